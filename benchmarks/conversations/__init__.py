"""Conversations: whether a question that leans on earlier turns finds what it is about."""
