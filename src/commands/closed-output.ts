// A reader may close the output early: `accord doctor | head -1`. The command goes on to its end, and its exit code stays its own.

export function surviveClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
}
