/** Serves the calendar on stdio: `node server.ts [FILE]`, or with CALENDAR_FILE set. CALENDAR_ZONE: such as Europe/Berlin. */
import { openCalendar } from './calendar.ts'

const zone = process.env['CALENDAR_ZONE']
await using calendar = openCalendar({
  file: process.argv[2] ?? process.env['CALENDAR_FILE'] ?? 'calendar.db',
  ...(zone !== undefined && { zone }),
})
await calendar.server.stdio()
