// Lets so many tasks run at once; the others queue.
class Gate {
  constructor(places) {
    this.free = places;
    this.waiting = [];
  }

  async run(task) {
    if (this.free > 0) this.free -= 1;
    else await new Promise((resolve) => this.waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.free += 1;
    }
  }
}

module.exports = { Gate };
