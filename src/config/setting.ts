// The type of a setting: its name, default, meaning and parser.
import type { Parser } from './parsers.ts'

/** The settings that a default may depend on. */
interface Earlier {
  dataDir: string
  appUrl: string | null
  appName: string
  s3Endpoint: string | null
}

export interface Setting<T = unknown> {
  name: string
  /** The default in the spelling of .env. An empty text means that no value is set. */
  default: string | ((earlier: Earlier) => string)
  /** A description of the default. Shown instead of a default that is derived or empty. */
  defaultInWords?: string
  unit?: string
  /** One or two sentences. The sentences must be readable both as plain text and as Markdown. */
  meaning: string
  parse: Parser<T>
  /**
   * Whether leading and trailing spaces are kept. Needed for a password, which may begin or end
   * with spaces.
   */
  keepsSpaces?: true
  /**
   * The former name of the variable. It still works, with a warning, until the second next minor
   * version.
   */
  formerName?: string
}

export type SettingGroup = Record<string, Setting>
