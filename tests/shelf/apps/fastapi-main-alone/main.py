import uvicorn
from fastapi import FastAPI

app = FastAPI()


@app.get("/")
def alone():
    return {"files": 2}


if __name__ == "__main__":
    uvicorn.run("main:app", host="0.0.0.0", port=8000, workers=2)
