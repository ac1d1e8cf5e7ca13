"""Studies as folders of jobs, and the processes that run them."""
