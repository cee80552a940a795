/** What the lines need to know. */
export interface QuickStartOptions {
  /** Where the service is reached. */
  readonly url: string;
  /** The file that holds the operator key. */
  readonly keyFile: string;
}

/**
 * The lines that take a new user through the main job, from an empty service to an installed firmware. Each is complete,
 * and works as it is printed in a POSIX shell with curl; a test runs exactly these.
 */
export function quickStartLines({ url, keyFile }: QuickStartOptions): readonly string[] {
  return [
    `OTA_URL=${shellQuoted(url)}; OTA_OPERATOR_KEY=$(cat ${shellQuoted(keyFile)})`,
    `operator() { curl -sS -w '\\n' -H "Authorization: Bearer $OTA_OPERATOR_KEY" "$@"; }`,
    `device() { curl -sS -w '\\n' -H "Authorization: Bearer $TOKEN" "$@"; }`,
    "# As an operator: publish a firmware (any file will do), release it to everybody, register a device.",
    `head -c 1000000 /dev/urandom > lamp-1.1.0.bin`,
    `operator --json '{"name":"lamp"}' "$OTA_URL/v1/products"`,
    `FIRMWARE=$(operator -T lamp-1.1.0.bin -X POST "$OTA_URL/v1/products/lamp/firmware?version=1.1.0" | ${field("id")})`,
    `operator --json '{"startRollout":true}' "$OTA_URL/v1/firmware/$FIRMWARE/release"`,
    `TOKEN=$(operator --json '{"serial":"lamp-0001"}' "$OTA_URL/v1/products/lamp/devices" | ${field("token")})`,
    "# As the device: ask, download, report; then run the new version, which ends the upgrade.",
    `ANSWER=$(device --json '{"version":"1.0.0"}' "$OTA_URL/v1/check"); echo "$ANSWER"`,
    `curl -sS -o downloaded.bin "$(echo "$ANSWER" | ${field("url")})" && cmp lamp-1.1.0.bin downloaded.bin && echo downloaded`,
    `ATTEMPT=$(echo "$ANSWER" | sed 's/.*"attempt":{"id":\\([0-9]*\\).*/\\1/')`,
    `device --json '{"state":"installed"}' "$OTA_URL/v1/attempts/$ATTEMPT/reports"`,
    `device --json '{"version":"1.1.0"}' "$OTA_URL/v1/check"`,
  ];
}

/** Takes one text field out of a line of JSON; the one that comes last where several have the name. */
function field(name: string): string {
  return `sed 's/.*"${name}":"\\([^"]*\\)".*/\\1/'`;
}

function shellQuoted(text: string): string {
  return /^[A-Za-z0-9_./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
