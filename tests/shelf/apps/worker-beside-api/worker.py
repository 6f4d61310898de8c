import os
import time

while True:
    print("nothing to do", os.getpid())
    time.sleep(5)
