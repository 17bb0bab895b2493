// Metrics about the connections and faults of the database. They are read from memory and not by a
// query, because a fault of the database could make the query fail.
import { Counter, Gauge, Registry } from 'prom-client'
import type { Store } from '../../../db/store.ts'

/** Returns a registry that reads the state of the store at each scrape. */
export function createStoreMetrics(store: Store): Registry {
  const registers = [new Registry()] as [Registry]
  new Gauge({
    name: 'accord_database_lost',
    help: '1 while the database file or the data folder is not the one that was opened.',
    registers,
    collect() {
      this.set(store.lostFiles() === null ? 0 : 1)
    },
  })
  new Counter({
    name: 'accord_database_faults_total',
    help: 'Statements that met a damaged page (damaged) or an error of the disk (io), and rounds of maintenance that failed.',
    labelNames: ['kind'],
    registers,
    collect() {
      this.reset()
      for (const { kind, count } of store.faults()) this.inc({ kind }, count)
    },
  })
  new Gauge({
    name: 'accord_database_fault',
    help: '1 while the fault lasts: damaged until a restart, io until a minute after the last, maintenance until it succeeds.',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const { kind, present } of store.faults()) this.set({ kind }, present === null ? 0 : 1)
    },
  })
  new Counter({
    name: 'accord_transaction_retries_total',
    help: 'Transactions that ran again after a conflict with another one. Always 0 on SQLite.',
    registers,
    collect() {
      this.reset()
      this.inc(store.retries())
    },
  })
  if (store.connections().length > 0) countConnections(store, registers)
  return registers[0]
}

function countConnections(store: Store, registers: Registry[]): void {
  new Gauge({
    name: 'accord_database_connections',
    help: 'Connections of this process to the database server, and callers that wait for one.',
    labelNames: ['pool', 'state'],
    registers,
    collect() {
      for (const { pool, open, idle, waiting } of store.connections()) {
        this.set({ pool, state: 'busy' }, open - idle)
        this.set({ pool, state: 'idle' }, idle)
        this.set({ pool, state: 'waiting' }, waiting)
      }
    },
  })
}
