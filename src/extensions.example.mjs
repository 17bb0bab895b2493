// A listener module to copy. To try it: ACCORD_LISTENERS=./src/extensions.example.mjs npm start
// It refuses sources called "Test", and prints each created setting on standard error. Names of
// environment variables of a listener module begin with ACCORD_EXT_ or with a prefix of its own.

/** @type {import('./extensions.ts').Extension} */
export default function register(events) {
  // Runs before a write. Throwing a Veto rolls back the write, and the caller gets 403
  // `event_vetoed` with the reason.
  events.on('settings.source.create.before', (event) => {
    if (event.input.name.trim().toLowerCase() === 'test') throw new events.Veto('Sources must not be called "Test".')
  })

  // Runs after the commit. `*` stands for one segment of the event name. An error thrown here is
  // only logged.
  events.on('settings.*.create.after', ({ name, entity, actor }) => {
    process.stderr.write(`${name}: ${entity.name}, by ${actor.name}\n`)
  })
}
