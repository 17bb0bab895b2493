// The result of one check of `accord doctor`.

/**
 * Null means no problem. A string is a problem with its remedy, and a Hint is advice. An array
 * contains several problems and hints.
 */
export type CheckResult = string | Hint | null | (string | Hint)[]

/** Advice about something that works. A hint does not count as a failed check. */
export class Hint {
  readonly sentence: string
  constructor(sentence: string) {
    this.sentence = sentence
  }
}
