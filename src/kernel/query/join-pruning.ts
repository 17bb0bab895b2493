// Removes unused joins from queries that count or sum the rows of a list. SQLite omits unused joins
// from a query that returns rows, but not from an aggregate query.
import type { JoinNode, KyselyPlugin, OperationNode, SelectQueryNode } from 'kysely'
import type { Context } from '../context.ts'
import type { Rows } from './sort-and-cursor.ts'

/**
 * Removes the joins that the rest of the query does not use. Must be the last change of the query,
 * because later changes could use a removed join.
 */
export const pruneJoins = <Row>(rows: Rows<Row>): Rows<Row> => rows.withPlugin(joinPruning)

/**
 * Runs a query without its unused joins and returns its rows. Compiles the query and runs it on
 * `db`, because Kysely would run a query with a plugin on a separate executor.
 */
export const executePruned = async <Row>({ db }: Pick<Context, 'db'>, rows: Rows<Row>): Promise<Row[]> =>
  (await db.executeQuery(pruneJoins(rows).compile())).rows

const joinPruning: KyselyPlugin = {
  transformQuery: ({ node }) => (node.kind === 'SelectQueryNode' ? withoutUnusedJoins(node as SelectQueryNode) : node),
  transformResult: async ({ result }) => result,
}

/**
 * Removes unused joins from a query node. A left join by id neither adds nor removes rows. It is
 * therefore unused if the rest of the query does not refer to its alias.
 */
function withoutUnusedJoins(node: SelectQueryNode): SelectQueryNode {
  const { joins = [], ...rest } = node
  const named = new Names().add(rest)
  const kept: JoinNode[] = []
  // The loop runs from the last join to the first, because a join may refer to an earlier join.
  for (const join of [...joins].reverse()) {
    const alias = aliasOf(join.table)
    if (join.joinType === 'LeftJoin' && alias !== undefined && isById(join.on?.on, alias) && !named.has(alias)) continue
    named.add(join)
    kept.unshift(join)
  }
  return kept.length === joins.length ? node : { ...rest, ...(kept.length > 0 && { joins: kept }) }
}

/** The identifiers and raw SQL texts that query nodes contain. */
class Names {
  readonly #identifiers = new Set<string>()
  readonly #texts: string[] = []

  add(part: unknown): this {
    if (typeof part !== 'object' || part === null) return this
    const { kind, name, sqlFragments } = part as { kind?: string; name?: string; sqlFragments?: readonly string[] }
    if (kind === 'IdentifierNode' && name !== undefined) this.#identifiers.add(name)
    if (sqlFragments) this.#texts.push(...sqlFragments)
    for (const each of Object.values(part)) this.add(each)
    return this
  }

  has(alias: string): boolean {
    return this.#identifiers.has(alias) || this.#texts.some((text) => text.includes(alias))
  }
}

/** Returns the alias of a joined table, or the table's name when there is no alias. */
function aliasOf(table: OperationNode): string | undefined {
  const { kind, alias, table: named } = table as unknown as Shape
  if (kind === 'AliasNode') return alias?.name
  return kind === 'TableNode' ? named?.identifier?.name : undefined
}

/** Returns whether a condition is exactly `<alias>.id = …`. */
function isById(condition: OperationNode | undefined, alias: string): boolean {
  const { kind, operator, leftOperand } = (condition ?? {}) as Shape
  const { table, column } = leftOperand ?? {}
  return (
    kind === 'BinaryOperationNode' &&
    operator?.operator === '=' &&
    table?.table?.identifier?.name === alias &&
    column?.column?.name === 'id'
  )
}

/** The properties of query nodes that this file reads. */
interface Shape {
  kind?: string
  name?: string
  alias?: { name?: string }
  identifier?: { name?: string }
  operator?: { operator?: string }
  leftOperand?: Shape
  table?: Shape
  column?: { column?: { name?: string } }
}
