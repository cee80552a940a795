import { createGatewayToken, hashToken } from "@ota/domain";
import { sql } from "drizzle-orm";
import { expect, it } from "vitest";
import { fixedStatement } from "../../src/fixed-statement.ts";
import { bytesList, givenList, textList } from "../../src/id-list.ts";
import { casesOn } from "../support/databases.ts";
import { createFleet, startChecks } from "../support/fleet.ts";

const ODD = [
  ...[
    "NULL",
    "null",
    "",
    " ",
    "{}",
    "{a,b}",
    '"',
    '""',
    "\\",
    '\\"',
    "\\x00ff",
    "a,b c",
    "'; --",
    "\t\n\r",
    "é 漢 🚀",
    "$1",
  ],
  "v".repeat(100_000),
];

export const oddTextCases = casesOn("the lists of a statement for devices that ask together", (database) => {
  it("hold every text as it is, and nothing apart from the text null", async () => {
    const texts = [...ODD, null];
    const read = fixedStatement(sql`select t from unnest(${givenList("texts", "text")}) t`, ([text]) => text);
    expect(await read(database().db, { texts: textList(texts) })).toEqual(texts);
  });

  it("hold every byte", async () => {
    const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    const bytes = [all, all.subarray(90, 96), new Uint8Array()];
    const read = fixedStatement(
      sql`select encode(b, 'hex') from unnest(${givenList("bytes", "bytea")}) b`,
      ([hex]) => hex,
    );
    expect(await read(database().db, { bytes: bytesList(bytes) })).toEqual(
      bytes.map((one) => Buffer.from(one).toString("hex")),
    );
  });

  it("find devices whose serials are words of lists", async () => {
    const { db } = database();
    const { product } = await createFleet(db);
    const { token } = await createGatewayToken(db, { actor: { kind: "system" }, product, name: "gateway" });
    const checks = startChecks(db);
    const serials = ["NULL", "null", "Null", "~", ".", "-", "::1", "s".repeat(256)];
    const ask = () =>
      Promise.all(serials.map((serial) => checks.checkForUpdate({ tokenHash: hashToken(token), serial })));
    await ask();
    expect((await ask()).map(({ device }) => device.serial)).toEqual(serials);
  });
});
