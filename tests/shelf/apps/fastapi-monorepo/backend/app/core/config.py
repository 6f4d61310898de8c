import os

settings = {"name": os.getenv("PROJECT_NAME", "Full Stack")}
