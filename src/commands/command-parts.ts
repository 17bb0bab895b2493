// Examples, options and settings that the commands of program.ts and import-command.ts share.
import { type Command, Option } from 'commander'
import { parse } from 'dotenv'
import { type Config, environment, readConfig } from '../config/config.ts'

/** Adds examples to the help of a command. test/commands/program.test.ts parses each example. */
export function withExamples(command: Command, ...lines: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`)
}

/** The option of commands with a machine-readable result. */
export const jsonOption = (): Option => new Option('--json', 'print the result as JSON')

/**
 * Reads the configuration from the environment and .env. Warnings are printed on standard error.
 */
export function readEnvironment(): Config {
  const { config, warnings } = readConfig(environment(parse))
  for (const warning of warnings) console.error(warning)
  return config
}
