// The parts of the help that several commands share.
import { type Command, Option } from 'commander'

/** Adds examples to the help of a command. test/commands/program.test.ts parses each example. */
export function withExamples(command: Command, ...lines: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`)
}

/** The option of commands with a machine-readable result. */
export const jsonOption = (): Option => new Option('--json', 'print the result as JSON')
