"""The development sets measured by one command, and the tables of the documentation that show it."""
