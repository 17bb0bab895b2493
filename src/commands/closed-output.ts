// Keeps a command running when the reader of its output closes early, as in `accord doctor | head
// -1`. The command ends with its usual exit code.

export function surviveClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
}
