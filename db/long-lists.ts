// Statements with long lists of values. A statement has a bounded number of parameters (SQLite
// 32,766, PostgreSQL 65,535), and a list of ids can be longer. The query compilers of both engines
// therefore bind a long list of `in` and `not in` as one parameter.
import {
  type BinaryOperationNode,
  type Expression,
  expressionBuilder,
  OperatorNode,
  PostgresQueryCompiler,
  PrimitiveValueListNode,
  type RawBuilder,
  type SqlBool,
  SqliteQueryCompiler,
  sql,
} from 'kysely'

/** A longer list is bound as one parameter. */
export const maxListParameters = 1_000

/** Returns the values of a long list and whether they are excluded; null for another operation. */
function longList({
  operator,
  rightOperand,
}: BinaryOperationNode): { values: readonly unknown[]; not: boolean } | null {
  if (!PrimitiveValueListNode.is(rightOperand) || !OperatorNode.is(operator)) return null
  const { values } = rightOperand
  const not = operator.operator === 'not in'
  return values.length > maxListParameters && (not || operator.operator === 'in') ? { values, not } : null
}

export class SqliteCompiler extends SqliteQueryCompiler {
  protected override visitBinaryOperation(node: BinaryOperationNode): void {
    const list = longList(node)
    if (list === null) {
      super.visitBinaryOperation(node)
      return
    }
    this.visitNode(node.leftOperand)
    this.append(list.not ? ' not in (select value from json_each(' : ' in (select value from json_each(')
    this.appendValue(JSON.stringify(list.values))
    this.append('))')
  }
}

export class PostgresCompiler extends PostgresQueryCompiler {
  protected override visitBinaryOperation(node: BinaryOperationNode): void {
    const list = longList(node)
    if (list === null) {
      super.visitBinaryOperation(node)
      return
    }
    this.visitNode(node.leftOperand)
    this.append(list.not ? ' <> all(' : ' = any(')
    this.appendValue(list.values)
    this.append(')')
  }
}

/** Returns the condition `column in (values)` for an `sql` template. `values` is not empty. */
export const isIn = (column: Expression<unknown>, values: readonly unknown[]): RawBuilder<SqlBool> =>
  sql<SqlBool>`${expressionBuilder<never, never>()(column as never, 'in', values as never)}`
