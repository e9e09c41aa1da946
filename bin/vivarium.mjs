#!/usr/bin/env node
// Old syntax on purpose: an old Node must get as far as to say that it is too old.
var parts = process.versions.node.split('.')
var isNewEnough = Number(parts[0]) > 22 || (Number(parts[0]) === 22 && Number(parts[1]) >= 18)
if (isNewEnough) {
  import('../dist/cli/main.js')
} else {
  process.stderr.write(
    'vivarium: needs Node 22.18 or newer, this is ' +
      process.versions.node +
      '\n  npx -p node@24 -p vivarium vivarium ' +
      process.argv.slice(2).join(' ') +
      '\n',
  )
  process.exitCode = 1
}
