// Creates the tables of roles, users, groups, tokens, failed logins and idempotency keys.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  flag,
  id,
  integer,
  json,
  key,
  listed,
  nullable,
  oneOf,
  references,
  text,
  timestamp,
  timestamps,
  version,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'roles',
    {
      id: id(),
      name: text(),
      name_key: key(),
      description: nullable(text()),
      permission_type: oneOf(['all', 'custom']),
      permissions: nullable(json()),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: listed },
  )
  await createTable(
    db,
    dialect,
    'users',
    {
      id: id(),
      name: text(),
      name_key: key(),
      email: text(),
      email_key: key(),
      password_hash: nullable(text()),
      is_active: flag(true),
      view_permission: oneOf(['global', 'group', 'individual'], 'global'),
      role_id: references('roles', 'restrict'),
      image_file_id: nullable(integer()),
      ...timestamps(),
      ...version(),
    },
    { unique: [['email_key']], indexes: [['name_key', 'id'], ...listed] },
  )
  await createTable(
    db,
    dialect,
    'groups',
    {
      id: id(),
      name: text(),
      name_key: key(),
      description: nullable(text()),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: listed },
  )
  await createTable(
    db,
    dialect,
    'user_groups',
    { user_id: references('users', 'cascade'), group_id: references('groups', 'cascade') },
    { primaryKey: ['user_id', 'group_id'] },
  )
  await createTable(
    db,
    dialect,
    'tokens',
    {
      id: id(),
      user_id: references('users', 'cascade'),
      name: text(),
      kind: oneOf(['login', 'personal']),
      abilities: json('["*"]'),
      secret_hash: text(),
      expires_at: nullable(timestamp()),
      last_used_at: nullable(timestamp()),
      last_used_ip: nullable(text()),
      allowed_ips: json('[]'),
      ...timestamps(),
      ...version(),
    },
    { unique: [['secret_hash']], indexes: [['expires_at', 'id'], ['last_used_at', 'id'], ...listed] },
  )
  await createTable(
    db,
    dialect,
    'login_attempts',
    { id: id(), email_key: key(), ip: text(), created_at: timestamp() },
    {
      indexes: [
        ['email_key', 'ip', 'created_at'],
        ['ip', 'created_at'],
      ],
    },
  )
  await createTable(
    db,
    dialect,
    'idempotency_keys',
    {
      id: id(),
      token_id: references('tokens', 'cascade'),
      key: text(),
      request_hash: text(),
      state: oneOf(['in_flight', 'committed', 'completed'], 'in_flight'),
      status: nullable(integer()),
      headers: nullable(text()),
      body: nullable(text()),
      created_at: timestamp(),
      expires_at: timestamp(),
    },
    { unique: [['token_id', 'key']], indexes: [['expires_at']] },
  )
}
