// What a look of the doctor comes back with.

/** Null when all is well, else what is wrong and what to do. Several when one look finds several. */
export type CheckResult = string | Hint | null | (string | Hint)[]

/** What works, and might be better. */
export class Hint {
  readonly sentence: string
  constructor(sentence: string) {
    this.sentence = sentence
  }
}
