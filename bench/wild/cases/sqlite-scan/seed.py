"""Makes readings.db; with --index, adds the index that is missing."""
import random
import sqlite3
import sys

database = sqlite3.connect("readings.db")
if "--index" in sys.argv:
    database.execute("create index reading_sensor_taken on reading (sensor, taken)")
else:
    random.seed(7)
    database.execute("create table reading (id integer primary key, sensor int, taken int, celsius real, note text)")
    database.executemany(
        "insert into reading (sensor, taken, celsius, note) values (?, ?, ?, 'routine')",
        ((random.randrange(400), 1_700_000_000 + i * 7, round(random.gauss(14, 6), 1)) for i in range(150_000)),
    )
database.commit()
database.close()
