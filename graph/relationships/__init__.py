"""The relationship graph of a workspace: where passages come from, what was talked about, and who read what."""
