"""The processes of `mara serve`: one that serves a site, or several under a supervisor."""
