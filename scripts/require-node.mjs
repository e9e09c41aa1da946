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
      'You do not have to change your own Node: the dev dependency `node` installs version 24, and npm scripts use it.',
      'It is missing here: either the packages are not installed, or its install script did not run. Run one of:',
      '',
      '  npm ci                  installs everything, including that Node',
      '  npm rebuild node        runs its install script again',
      '',
      'Start scripts with `npm run …` or `npx …`, not with `node scripts/…`, so that they use it.',
    ].join('\n'),
  )
  process.exit(1)
}
