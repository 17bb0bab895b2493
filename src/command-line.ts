// The command line `accord`. Only the code of the called command is loaded, so that the command
// starts fast. A failure prints one sentence on standard error; `accord --help` lists the exit
// codes.
import { getPriority, setPriority } from 'node:os'
import { reportFailure } from './commands/command-error.ts'
import { createProgram } from './commands/program.ts'

/** The niceness of the process. Subprocesses have the same value (kernel/runtime/offload.ts). */
const niceness = 10

const program = createProgram()
program.hook('preAction', (_program, command) => {
  if (command.name() === 'doctor') lowerPriority()
})

// The reader of the output may close early, as in `accord doctor | head -1`. The command then ends
// with its usual exit code.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })

try {
  await program.parseAsync()
} catch (error) {
  reportFailure(error)
}

/**
 * Lowers the priority of a command that only reads, so that a server on the same machine comes
 * first. A command that writes must keep its priority: at low priority, it would hold its write
 * lock longer, and servers wait for that lock.
 */
function lowerPriority(): void {
  try {
    setPriority(Math.max(niceness, getPriority()))
  } catch {
    // Some systems forbid the change. The priority then stays as it is.
  }
}
