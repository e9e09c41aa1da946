/**
 * Stops an npm script on a Node that is too old, and says why and what to do. Plain JavaScript without modern syntax, because the
 * old Node must still be able to read it. Silent when all is well: stdout may belong to a protocol.
 */
var needed = [22, 18]
var found = process.versions.node.split('.').map(Number)

if (found[0] < needed[0] || (found[0] === needed[0] && found[1] < needed[1])) {
  console.error(
    [
      'Vivarium needs Node ' + needed.join('.') + ' or newer; this is ' + process.version + ' (' + process.execPath + ').',
      'You do not have to change your own Node: the dev dependency `node` brings version 24, and npm scripts find it first.',
      'It is not there, so either the packages are not installed, or its install script was not allowed to run:',
      '',
      '  npm ci                  installs everything, that Node included',
      '  npm rebuild node        only runs its install script again',
      '',
      'And start scripts by `npm run …` (or `npx …`), not by `node scripts/…`, so that it is found.',
    ].join('\n'),
  )
  process.exit(1)
}
