"""What carried the mass of a walk to its passages, as data, as a page and as GraphML."""
