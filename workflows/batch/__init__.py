"""``mara batch``: the questions of a file answered into a folder, side by side, and gone on with if broken off."""
