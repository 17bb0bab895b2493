// Changes the joins of a query. `pruneJoins` removes unused joins: SQLite does not omit them from
// queries that count or sum the rows of a list, and PostgreSQL plans them, which takes
// milliseconds. `parentFirst` makes a joined table the first table of a query.
import {
  AndNode,
  type BinaryOperationNode,
  type Expression,
  ExpressionWrapper,
  FromNode,
  JoinNode,
  type JoinType,
  type KyselyPlugin,
  type OperationNode,
  type RawBuilder,
  type SelectQueryNode,
  type SqlBool,
  sql,
  WhereNode,
} from 'kysely'
import type { Context } from '../context.ts'
import type { Rows } from './sort-and-cursor.ts'

/**
 * Removes the joins that the rest of the query does not use. Must be the last change of the query,
 * because later changes could use a removed join.
 */
export const pruneJoins = <Row>(rows: Rows<Row>): Rows<Row> => rows.withPlugin(joinPruning)

/**
 * Makes the database read a joined table first, in the order of its index, and then the rows that
 * refer to each of its rows. SQLite reads the tables of a cross join in the given order. The query
 * must exclude the rows without a joined row.
 */
export const parentFirst = <Row>(rows: Rows<Row>, alias: string): Rows<Row> =>
  rows.withPlugin(pluginFor((node) => withTableFirst(node, alias)))

/**
 * Takes a joined table out of a query. Returns the table, the query of the rows that refer to the
 * row that an outer query reads, and the column that refers to it. PostgreSQL can then stop after a
 * page of each such row, and would otherwise read them all, because its joins keep the order of the
 * first table only.
 */
export function splitJoin<Row>(rows: Rows<Row>, alias: string) {
  const { table, on } = joinOf(rows.toOperationNode() as SelectQueryNode, alias)
  const name = aliasOf((table as unknown as Shape).node ?? table)
  const reference: Expression<unknown> = new ExpressionWrapper((on as BinaryOperationNode).rightOperand)
  const parent = sql.ref(`${alias}.id`)
  return {
    parent: `${name} as ${alias}`,
    reference,
    // An equality would let PostgreSQL walk through all rows in the order of their ids.
    children: rows
      .where(sql<SqlBool>`${reference} between ${parent} and ${parent}`)
      .withPlugin(pluginFor((node) => ({ ...node, joins: joinOf(node, alias).others }))),
  }
}

/**
 * Makes the database find the rows by a subquery of their ids, one after the other. PostgreSQL does
 * so for a lateral join, and otherwise reads all rows when it expects many ids.
 */
export function foundByIds<Row>(
  { services }: Pick<Context, 'services'>,
  rows: Rows<Row>,
  table: string,
  ids: RawBuilder<unknown>,
): Rows<Row> {
  const id = sql.ref(`${table}.id`)
  const chosen = ids.as('chosen').toOperationNode()
  if (!services.store.dialect.hasLateralJoins)
    return rows
      .where(sql<SqlBool>`${id} = chosen.id`)
      .withPlugin(pluginFor((node) => withIdsFirst(node, chosen, 'CrossJoin')))
  const found = sql`(select * from ${sql.table(table)} where ${id} = chosen.id offset 0)`.as(table).toOperationNode()
  return rows.withPlugin(pluginFor((node) => withIdsFirst(node, chosen, 'LateralCrossJoin', found)))
}

const pluginFor = (change: (node: SelectQueryNode) => SelectQueryNode): KyselyPlugin => ({
  transformQuery: ({ node }) => (node.kind === 'SelectQueryNode' ? change(node as SelectQueryNode) : node),
  transformResult: async ({ result }) => result,
})

const joinPruning = pluginFor(withoutUnusedJoins)

function withIdsFirst(
  node: SelectQueryNode,
  ids: OperationNode,
  join: JoinType,
  child = node.from?.froms[0],
): SelectQueryNode {
  if (!child) throw new Error('The query has no table.')
  return { ...node, from: FromNode.create([ids]), joins: [JoinNode.create(join, child), ...(node.joins ?? [])] }
}

function joinOf({ joins = [] }: SelectQueryNode, alias: string) {
  const join = joins.find(({ table }) => aliasOf(table) === alias)
  if (!join?.on) throw new Error(`The query has no join of ${alias}.`)
  return { table: join.table, on: join.on.on, others: joins.filter((each) => each !== join) }
}

function withTableFirst(node: SelectQueryNode, alias: string): SelectQueryNode {
  const { table, on, others } = joinOf(node, alias)
  const { from, where } = node
  const [child] = from?.froms ?? []
  if (!child) throw new Error('The query has no table.')
  return {
    ...node,
    from: FromNode.create([table]),
    joins: [JoinNode.create('CrossJoin', child), ...others],
    where: WhereNode.create(where ? AndNode.create(on, where.where) : on),
  }
}

/**
 * Removes unused joins from a query node. A left join by id neither adds nor removes rows. It is
 * therefore unused if the rest of the query does not contain its alias, not even in raw SQL.
 */
function withoutUnusedJoins(node: SelectQueryNode): SelectQueryNode {
  const { joins = [], ...rest } = node
  const kept: JoinNode[] = []
  let used = textOf(rest)
  // The loop runs from the last join to the first, because a join may refer to an earlier join.
  for (const join of [...joins].reverse()) {
    const alias = aliasOf(join.table)
    if (join.joinType === 'LeftJoin' && alias && isById(join.on?.on, alias) && !used.includes(alias)) continue
    used += textOf(join)
    kept.unshift(join)
  }
  return kept.length === joins.length ? node : { ...rest, ...(kept.length > 0 && { joins: kept }) }
}

/** Returns all names and raw SQL of a part of a query. JSON has no notation of large integers. */
const textOf = (part: object): string =>
  JSON.stringify(part, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value))

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
  node?: OperationNode
  identifier?: { name?: string }
  operator?: { operator?: string }
  leftOperand?: Shape
  table?: Shape
  column?: { column?: { name?: string } }
}
