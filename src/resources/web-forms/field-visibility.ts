// Which fields of a form are visible to visitors.
import type { Schema } from '../../contract/types.ts'
import type { Attribute } from '../attributes/attribute-set.ts'
import { isOwned } from '../attributes/lookups.ts'
import { valueTypeOf } from '../attributes/types.ts'

type Field = Pick<Schema<'WebFormAttribute'>, 'is_hidden'>

/** Visitors type the name of the organization, because the list of organizations is not public. */
export const isOrganizationName = ({ isOwn, code }: Attribute, field: Field): boolean =>
  !isOwn && code === 'organization_id' && !field.is_hidden

/** Hidden fields are not shown, nor are fields whose choices are records with an owner. */
export const isFieldShown = (attribute: Attribute, field: Field): boolean =>
  !field.is_hidden && (attribute.lookup === null || !isOwned(attribute.lookup) || isOrganizationName(attribute, field))

/** Whether a record needs a value of it. An unticked checkbox is a value. */
export const requiresValue = ({ type, isOwn, isRequired, initial }: Attribute): boolean =>
  isOwn && isRequired && initial === null && type !== 'boolean' && valueTypeOf({ type }) !== undefined
