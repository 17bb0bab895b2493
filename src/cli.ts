#!/usr/bin/env node
// The program `accord`. It loads the command line after the version of Node is known to be new
// enough.
import './node-version.mjs'

await import('./command-line.ts')
