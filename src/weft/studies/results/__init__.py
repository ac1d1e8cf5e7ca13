"""From the records of runs to tables, summaries and examples."""
