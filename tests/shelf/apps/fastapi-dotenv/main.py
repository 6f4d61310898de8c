import os

from dotenv import load_dotenv
from fastapi import FastAPI

load_dotenv()
app = FastAPI()
GREETING = os.environ["GREETING"]


@app.get("/")
def greet():
    return GREETING
