import java.math.BigInteger;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;

/** Rows of PostgreSQL's driver for Java: how it reads the greatest amount. */
public class ByJava {
    private static final BigInteger GREATEST = BigInteger.ONE.shiftLeft(64).subtract(BigInteger.ONE);

    private interface Read {
        Object from(ResultSet row) throws SQLException;
    }

    private static void row(ResultSet row, String name, String how, Read read) {
        String said;
        String right;
        try {
            Object value = read.from(row);
            said = "`" + value + "` (" + value.getClass().getSimpleName() + ")";
            right = value.toString().equals(GREATEST.toString()) ? "yes" : "**no**";
        } catch (SQLException refused) {
            said = refused.getMessage();
            right = "refused";
        }
        System.out.println("| " + name + " | `" + how + "` | " + said + " | " + right + " |");
    }

    public static void main(String[] arguments) throws SQLException {
        String url = "jdbc:postgresql://127.0.0.1:" + arguments[0] + "/postgres?user=walras";
        try (var connection = DriverManager.getConnection(url);
                var statement = connection.createStatement();
                var result = statement.executeQuery("SELECT available FROM balances")) {
            result.next();
            String name = "pgjdbc " + connection.getMetaData().getDriverVersion();
            row(result, name, "getObject", one -> one.getObject(1));
            row(result, name, "getBigDecimal", one -> one.getBigDecimal(1));
            row(result, name, "getObject(BigInteger.class)", one -> one.getObject(1, BigInteger.class));
            row(result, name, "getLong", one -> one.getLong(1));
            row(result, name, "getDouble", one -> one.getDouble(1));
        }
    }
}
