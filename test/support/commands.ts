// Lists the commands of the command line, read from its command tree.
import type { Command } from 'commander'
import { createProgram } from '../../src/commands/program.ts'

export interface Leaf {
  /** The words after `accord`, such as `user create`. */
  path: string
  command: Command
}

/**
 * Returns all commands without subcommands. A command with subcommands, such as `accord user`, only
 * prints its help.
 */
export function leafCommands(program: Command = createProgram()): Leaf[] {
  const below = (command: Command, path: string[]): Leaf[] =>
    command.commands.length === 0
      ? [{ path: path.join(' '), command }]
      : command.commands.flatMap((each) => below(each, [...path, each.name()]))
  return below(program, [])
}
