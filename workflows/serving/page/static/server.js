// Talking to the server: its key, its errors, its streams, and whether it is there.

const KEY = "mara-key";
const RETRY_MS = 2000;
const LAST = ["ended", "failed", "gone"]; // kinds of events that end a stream
let askForKey = null;
let asked = null; // the question for a key that is open
let tellTrouble = () => {};
let isAway = false;

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export class Away extends Error {}

export function onTrouble(tell, ask) {
  tellTrouble = tell;
  askForKey = ask;
}

export const key = () => sessionStorage.getItem(KEY) ?? "";

async function send(path, options = {}) {
  const headers = { ...options.headers };
  if (key()) headers.authorization = `Bearer ${key()}`;
  let reply;
  try {
    reply = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    lost();
    throw new Away("The server does not answer");
  }
  if (isAway && reply.ok) found();
  if (reply.ok) return reply;
  const told = await reply.json().catch(() => null);
  const message = told?.error?.message ?? `The server answered ${reply.status}`;
  if (reply.status === 401 && askForKey) {
    asked ??= askForKey(key() ? message : "").finally(() => { asked = null; });
    sessionStorage.setItem(KEY, await asked);
    return send(path, options);
  }
  throw new Refused(message, reply.status);
}

const withBody = (method, body) => ({ method, body: JSON.stringify(body), headers: { "content-type": "application/json" } });

export const get = async (path) => (await send(path)).json();
export const post = async (path, body) => (await send(path, withBody("POST", body))).json();
// Arrives even where the page is being closed.
export const postLast = async (path, body) => (await send(path, { ...withBody("POST", body), keepalive: true })).json();
export const patch = async (path, body) => (await send(path, withBody("PATCH", body))).json();
export const remove = async (path) => (await send(path, { method: "DELETE" })).json();
export const put = async (path, file) => (await send(path, { method: "PUT", body: file })).json();

// Yields the events of a stream, of a request with a body where one is given. Throws Away where it breaks off.
export async function* stream(path, body, signal) {
  const reply = await send(path, { ...(body && withBody("POST", body)), signal });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  let last = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = (waiting + value).split("\n\n");
      waiting = parts.pop();
      for (const part of parts) {
        if (!part.startsWith("data: ")) continue;
        const told = JSON.parse(part.slice(6));
        last = told.kind;
        yield told;
      }
    }
  } catch (fault) {
    throw fault.name === "AbortError" ? fault : new Away("The connection broke");
  } finally {
    reader.cancel().catch(() => {});
  }
  if (!LAST.includes(last)) throw new Away("The connection broke");
}

function lost() {
  if (isAway) return;
  isAway = true;
  tellTrouble("The server does not answer. What you typed is kept; the page goes on by itself once it is back.");
  setTimeout(lookAgain, RETRY_MS);
}

async function lookAgain() {
  try {
    await send("api/conversations");
  } catch {
    if (isAway) setTimeout(lookAgain, RETRY_MS);
  }
}

function found() {
  isAway = false;
  tellTrouble("");
}
