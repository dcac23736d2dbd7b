"""A folder of ordinary office files of an invented firm, and what is shown first when it is asked."""
