// Parts of the help that commands have in common.
import { type Command, Option } from 'commander'

/** Adds examples to the help of a command. test/commands/program.test.ts parses each of them. */
export function withExamples(command: Command, ...lines: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`)
}

/** The option of commands whose result a program can read. */
export const jsonOption = (): Option => new Option('--json', 'print the result as JSON')
