// A listener module to copy. Try it: ACCORD_LISTENERS=./src/extensions.example.mjs npm start
// It refuses sources called "Test", and prints each created setting on standard error.

/** @type {import('./extensions.ts').Extension} */
export default function register(events) {
  // Before a write: throwing a Veto rolls it back, and the caller gets 403 `event_vetoed` with the
  // reason.
  events.on('settings.source.create.before', (event) => {
    if (event.input.name.trim().toLowerCase() === 'test') throw new events.Veto('Sources must not be called "Test".')
  })

  // After the commit: `*` stands for one segment. A failure here is only logged.
  events.on('settings.*.create.after', ({ name, entity, actor }) => {
    process.stderr.write(`${name}: ${entity.name}, by ${actor.name}\n`)
  })
}
