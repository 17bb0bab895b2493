// Rules for the stages of a pipeline. The functions compute a plan from the stored
// and the sent stages, and write nothing.
import type { Schema } from '../../contract/types.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { fold, slug } from '../../kernel/values/format.ts'
import { namedLike } from '../../kernel/values/names.ts'

export interface StageRow {
  id: number
  code: string
  name: string
  probability: number
  sort_order: number
}

export interface PlannedStage extends Omit<StageRow, 'id'> {
  /** The id of a stored stage; null for a new stage. */
  id: number | null
}

export interface StagePlan {
  stages: PlannedStage[]
  removed: StageRow[]
}

type StageInput = Schema<'StageInput'>

/** A stage of any pipeline. */
interface AnyStage {
  id: number
  code: string
  name: string
  lead_pipeline_id: number
}

/** Returns the stages with this name; the code counts as a name, too. */
export const stagesNamed = <S extends AnyStage>(stages: readonly S[], name: string): S[] => {
  const named = namedLike(stages, name)
  return named.length > 0 ? named : stagesWithCode(stages, name)
}

export const stagesWithCode = <S extends AnyStage>(stages: readonly S[], code: string): S[] =>
  stages.filter((each) => each.code === fold(code.trim()))

/** The stages of a new pipeline whose request contains no stages. */
const defaultStages: readonly StageInput[] = [
  { code: 'new', name: 'New', probability: 10 },
  { code: 'follow-up', name: 'Follow Up', probability: 25 },
  { code: 'prospect', name: 'Prospect', probability: 50 },
  { code: 'negotiation', name: 'Negotiation', probability: 75 },
  { code: 'won', name: 'Won', probability: 100 },
  { code: 'lost', name: 'Lost', probability: 0 },
]
const fixed = new Map(
  defaultStages
    .filter(({ code }) => ['new', 'won', 'lost'].includes(code ?? ''))
    .map((stage) => [stage.code ?? '', stage]),
)
const fixedProbability: Record<string, number> = { won: 100, lost: 0 }
const maxStages = 50

export const isFixedStage = (code: string): boolean => fixed.has(code)

/**
 * Returns the planned and the removed stages of a pipeline. Without `sent`, stored stages stay
 * unchanged, and a new pipeline gets the default stages. Adds all errors to `errors`.
 */
export function planStages(
  present: readonly StageRow[],
  sent: readonly StageInput[] | undefined,
  errors: ValidationErrors,
): StagePlan {
  if (sent === undefined && present.length > 0) return { stages: [...present], removed: [] }
  const inputs = sent ?? defaultStages
  const planned = inputs.map((input, index) => planOne(present, input, index, errors))
  const kept = new Set(planned.map(({ id }) => id))
  const removed = present.filter(({ id }) => !kept.has(id))
  if (present.length === 0) addFixed(planned)
  refuseDuplicates(planned, inputs, errors)
  if (planned.length > maxStages)
    errors.invalid('stages', `Must not have more than ${maxStages} entries, with new, won and lost.`)
  return { stages: sortStages(planned), removed }
}

function planOne(
  present: readonly StageRow[],
  input: StageInput,
  index: number,
  errors: ValidationErrors,
): PlannedStage {
  const field = (name: string): string => `stages.${index}.${name}`
  const ownCode = input.code ?? slug(input.name ?? '')
  const row =
    input.id === undefined ? present.find(({ code }) => code === ownCode) : present.find(({ id }) => id === input.id)
  if (input.id !== undefined && !row) errors.invalid(field('id'), `This pipeline has no stage with id ${input.id}.`)
  if (row && input.code !== undefined && input.code !== row.code)
    errors.invalid(field('code'), 'The code of a stage cannot change.')
  if (!row && input.name === undefined) errors.invalid(field('name'), 'The field is required.')
  const name = input.name ?? row?.name ?? ''
  const code = row?.code ?? ownCode
  if (code === '' && name !== '')
    errors.invalid(field('name'), 'The name has no letter or digit to make a code of; send a code.')
  const only = fixedProbability[code]
  if (only !== undefined && input.probability !== undefined && input.probability !== only) {
    errors.invalid(field('probability'), `The probability of ${code} is always ${only}.`)
  }
  return {
    id: row?.id ?? null,
    code,
    name,
    probability: only ?? input.probability ?? row?.probability ?? 0,
    sort_order: input.sort_order ?? index + 1,
  }
}

function addFixed(planned: PlannedStage[]): void {
  for (const [code, { name = code, probability = 0 }] of fixed) {
    if (!planned.some((stage) => stage.code === code))
      planned.push({ id: null, code, name, probability, sort_order: 0 })
  }
}

/**
 * Adds an error for each duplicate code or name. A code may be derived from the name or from a
 * stored stage, so the error of a duplicate code is on the first of the fields `code`, `name` and
 * `id` that the client sent.
 */
function refuseDuplicates(
  planned: readonly PlannedStage[],
  inputs: readonly StageInput[],
  errors: ValidationErrors,
): void {
  for (const [index, stage] of planned.entries()) {
    if (stage.code === '') continue
    const before = planned.slice(0, index)
    const { code, name } = inputs[index] ?? {}
    const field = code !== undefined ? 'code' : name !== undefined ? 'name' : 'id'
    if (before.some(({ code }) => code === stage.code))
      errors.invalid(`stages.${index}.${field}`, `The code ${stage.code} occurs twice.`)
    else if (before.some(({ name }) => fold(name) === fold(stage.name)))
      errors.invalid(`stages.${index}.name`, `The name ${stage.name} occurs twice.`)
  }
}

/**
 * Returns the stages in order, with sort_order 1, 2, 3 and so on. `new` is first; `won` and `lost`
 * are last. The other stages are sorted by the planned sort_order; equal values keep their order in
 * the list.
 */
function sortStages(planned: readonly PlannedStage[]): PlannedStage[] {
  const rank = ({ code }: PlannedStage): number => ({ new: 0, won: 2, lost: 3 })[code] ?? 1
  return planned
    .map((stage, index) => ({ stage, index }))
    .sort((a, b) => rank(a.stage) - rank(b.stage) || a.stage.sort_order - b.stage.sort_order || a.index - b.index)
    .map(({ stage }, index) => ({ ...stage, sort_order: index + 1 }))
}
