"""Folders of invented business documents, and what is answered from them: right, wrong or refused."""
