// The reader of a pipe may close it early, as in `accord doctor | head -1`. The command still runs
// to its end and keeps its own exit code.

export function surviveClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
}
