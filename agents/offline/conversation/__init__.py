"""Reading a question in its conversation without a model: what it refers to, and what it leaves out."""
