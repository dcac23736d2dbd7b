"""The agents: one file a role, each with what it is asked, what it must answer and how the answer is checked."""
