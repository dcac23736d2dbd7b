"""Messages of a conversation: read as questions and turns, written as answers, told to who listens."""
