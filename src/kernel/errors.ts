// The problems that rules throw, and `ValidationErrors`, which collects all errors of
// a write.
import { type Conflict, type FieldErrors, Problem } from '../contract/output/problems.ts'

export { Problem } from '../contract/output/problems.ts'

export const invalid = (errors: FieldErrors): Problem => new Problem('validation_failed', undefined, { errors })
export const notFound = (noun: string, id: number | string): Problem =>
  new Problem('not_found', `No ${noun} has id ${id}.`)
export const forbidden = (required: string): Problem =>
  new Problem('forbidden', `You need the permission ${required} for this.`, { required })
export const isProtected = (detail: string): Problem => new Problem('protected', detail)
export const inUse = (detail: string, conflicts: Conflict[]): Problem => new Problem('in_use', detail, { conflicts })

/**
 * Collects the errors of one write. If a field is invalid, `throwIfAny` throws 422,
 * which also lists values that other records have taken. If all errors are taken values, it throws
 * 409.
 */
export class ValidationErrors {
  readonly #invalid: FieldErrors = {}
  readonly #taken: FieldErrors = {}
  readonly #conflicts: Conflict[] = []

  readonly #refused: readonly string[]

  /** `refused` lists the fields that failed the schema and were removed from the body. */
  constructor(refused: readonly string[] = []) {
    this.#refused = refused
  }

  /**
   * Returns whether the schema refused the field or a part of it. A rule that needs the field must
   * then be skipped.
   */
  isRefused(field: string): boolean {
    return this.#refused.some((each) => `${each}.`.startsWith(`${field}.`))
  }

  invalid(field: string, sentence: string): void {
    const list = this.#invalid[field] ?? []
    this.#invalid[field] = [...list, sentence]
  }

  taken(field: string, entity: string, id: number | null, sentence: string): void {
    const list = this.#taken[field] ?? []
    this.#taken[field] = [...list, sentence]
    this.#conflicts.push({ entity_type: entity, id, field })
  }

  /**
   * Returns a collector for the errors of a nested record. It adds each error to this object and
   * prepends `prefix` to the field name.
   */
  nested(prefix: string): ValidationErrors {
    return new NestedErrors(this, prefix)
  }

  /** Whether the rules or the schema found an error. */
  get any(): boolean {
    return this.#refused.length + this.size > 0
  }

  /** The number of fields in which the rules found an error. */
  get size(): number {
    return Object.keys(this.#invalid).length + Object.keys(this.#taken).length
  }

  get all(): FieldErrors {
    return { ...this.#taken, ...this.#invalid }
  }

  throwIfAny(): void {
    if (this.#refused.length + Object.keys(this.#invalid).length > 0)
      throw invalid({ ...this.#invalid, ...this.#taken })
    if (this.#conflicts.length > 0)
      throw new Problem('unique_violation', undefined, { errors: this.#taken, conflicts: this.#conflicts })
  }
}

class NestedErrors extends ValidationErrors {
  readonly #outer: ValidationErrors
  readonly #prefix: string

  constructor(outer: ValidationErrors, prefix: string) {
    super()
    this.#outer = outer
    this.#prefix = prefix
  }

  override isRefused(field: string): boolean {
    return this.#outer.isRefused(`${this.#prefix}.${field}`)
  }

  override invalid(field: string, sentence: string): void {
    this.#outer.invalid(`${this.#prefix}.${field}`, sentence)
  }

  override taken(field: string, entity: string, id: number | null, sentence: string): void {
    this.#outer.taken(`${this.#prefix}.${field}`, entity, id, sentence)
  }

  override get any(): boolean {
    return this.#outer.any
  }

  override get size(): number {
    return this.#outer.size
  }

  override get all(): FieldErrors {
    return this.#outer.all
  }

  /** The outer object throws the errors of all nested records at once. */
  override throwIfAny(): void {}
}
