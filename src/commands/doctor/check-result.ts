// The result of one check of the doctor.

/** Null: no problem. A string: an error with its remedy. An array: several of both. */
export type CheckResult = string | Hint | null | (string | Hint)[]

/** Advice about something that works. It does not fail the doctor. */
export class Hint {
  readonly sentence: string
  constructor(sentence: string) {
    this.sentence = sentence
  }
}
