from fastapi import APIRouter

router = APIRouter()


@router.get("/")
def rooms():
    return {"rooms": 3}
