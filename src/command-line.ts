// The command line `accord`. Only the code of the called command is loaded, so that the command
// starts fast. A failure prints one sentence on standard error; `accord --help` lists the exit
// codes.
import { surviveClosedOutput } from './commands/closed-output.ts'
import { reportFailure } from './commands/command-error.ts'
import { lowerPriority } from './commands/priority.ts'
import { createProgram } from './commands/program.ts'

const program = createProgram()
program.hook('preAction', (_program, command) => {
  if (command.name() === 'doctor') lowerPriority()
})

surviveClosedOutput()
try {
  await program.parseAsync()
} catch (error) {
  reportFailure(error)
}
