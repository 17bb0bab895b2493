// Shows the progress of a command: a bar at a terminal, otherwise one line for every 10 % of the
// work. The bar is drawn on standard error.
import { SingleBar } from 'cli-progress'

export async function showProgress<T>(
  what: string,
  stream: NodeJS.WriteStream,
  work: (tell: (done: number, total: number) => void) => Promise<T>,
): Promise<T> {
  if (!stream.isTTY) {
    const print = stream === process.stderr ? console.error : console.log
    let last = -1
    return work((done, total) => {
      const tenth = Math.floor((done * 10) / Math.max(total, 1))
      if (tenth > last) print(`${what} ${done}/${total}`)
      last = Math.max(last, tenth)
    })
  }
  const bar = new SingleBar({ format: `${what.padEnd(10)} {bar} {value}/{total}`, hideCursor: true })
  let isShown = false
  try {
    return await work((done, total) => {
      if (isShown) bar.update(done)
      else bar.start(total, done)
      isShown = true
    })
  } finally {
    bar.stop()
  }
}
