// Reads the configuration of a command from the environment and .env. Warnings are printed on
// standard error.
import { parse } from 'dotenv'
import { type Config, environment, readConfig } from '../config/config.ts'

export function readEnvironment(): Config {
  const { config, warnings } = readConfig(environment(parse))
  for (const warning of warnings) console.error(warning)
  return config
}
